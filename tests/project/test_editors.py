"""The grammar for editors, in the tokenizer of Visual Studio Code."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.accepted_queries import ACCEPTED
from support.pages import ROOT

from editors.make_grammar import TARGET, text

TOKENIZE = r"""
const fs = require('fs'), vsctm = require('vscode-textmate'), oniguruma = require('vscode-oniguruma');
const wasm = fs.readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm')).buffer;
const onigLib = oniguruma.loadWASM(wasm).then(() => ({
  createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
  createOnigString: (s) => new oniguruma.OnigString(s),
}));
const [grammarFile, queriesFile] = process.argv.slice(2);
const loadGrammar = async () => vsctm.parseRawGrammar(fs.readFileSync(grammarFile, 'utf8'), grammarFile);
new vsctm.Registry({ onigLib, loadGrammar }).loadGrammar('source.streamsparql').then((grammar) => {
  const out = JSON.parse(fs.readFileSync(queriesFile, 'utf8')).map((query) => {
    let state = vsctm.INITIAL;
    const words = [];
    for (const line of query.split('\n')) {
      const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
      state = ruleStack;
      for (const { startIndex, endIndex, scopes } of tokens)
        words.push([line.slice(startIndex, endIndex), scopes[scopes.length - 1]]);
    }
    return words;
  });
  console.log(JSON.stringify(out));
});
"""


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the tokenizer of Visual Studio Code from the npm registry; return its folder."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("tokenizer")
    install = [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "vscode-textmate@9",
        "vscode-oniguruma@2",
    ]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install the tokenizer: {done.stderr.strip().splitlines()[-1:]}")
    (folder / "tokenize.js").write_text(TOKENIZE)
    return folder


def tokens(folder: Path, queries: list[str]) -> list[list[tuple[str, str]]]:
    """Return the words of each query with their scopes."""
    (folder / "queries.json").write_text(json.dumps(queries))
    command = ["node", "tokenize.js", str(TARGET), "queries.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    tokenized: list[list[list[Any]]] = json.loads(done.stdout)
    return [
        [
            (word.strip(), scope.removesuffix(".streamsparql"))
            for word, scope in query
            if word.strip()
        ]
        for query in tokenized
    ]


def test_grammar_is_up_to_date() -> None:
    assert TARGET.read_text("utf-8") == text(), "run: python editors/make_grammar.py"


def test_files_of_the_extension_exist() -> None:
    extension = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text())
    contributed = extension["contributes"]
    paths = [contributed["languages"][0]["configuration"], contributed["grammars"][0]["path"]]
    for path in paths:
        json.loads((ROOT / "editors" / "vscode" / path).read_text())


def test_scopes_of_a_query(tokenizer: Path) -> None:
    query = r'''PREFIX ex: <http://example.org/#x> # a comment
SELECT ?x (AVG(?v) AS ?mean) FROM STREAM ex:s\/1 WINDOW RANGE 10 MINUTE SLIDE
WHERE { ?x a ex:T ; ex:v ?v . FILTER(?v >= 1.5e3 && ?x != "a\n\q"@en-GB) _:b1 ex:p """two
lines"""^^ex:d } [RANGE PT5M STEP 1s] SEQ getDURATION() timestamp(?x) true'''
    (words,) = tokens(tokenizer, [query])
    scopes = dict(words)
    expected = {
        "PREFIX": "keyword.control",
        "ex:": "entity.name.namespace",
        "<http://example.org/#x>": "string.other.iri",
        "# a comment": "comment.line.number-sign",
        "?x": "variable.other",
        "AVG": "support.function",
        "STREAM": "keyword.other.stream",
        "s\\/1": "entity.name.tag.local",
        "WINDOW": "keyword.other.window",
        "10 MINUTE": "constant.numeric.duration",
        "a": "string.quoted.double",
        ">=": "keyword.operator",
        "1.5e3": "constant.numeric",
        "&&": "keyword.operator",
        "\\n": "constant.character.escape",
        "\\q": "invalid.illegal.escape",
        "@en-GB": "storage.modifier.language",
        "_:b1": "entity.name.tag.blank",
        "two": "string.quoted.triple",
        "lines": "string.quoted.triple",
        "^^": "storage.type.datatype",
        "PT5M": "constant.numeric.duration",
        "SEQ": "keyword.operator.word",
        "getDURATION": "support.function",
        "timestamp": "support.function",
        "true": "constant.language",
    }
    assert {word: scopes.get(word) for word in expected} == expected
    assert ("a", "keyword.other.type") in words


def test_every_word_of_accepted_queries_has_a_scope(tokenizer: Path) -> None:
    queries = [query.lstrip("\ufeff") for queries in ACCEPTED.values() for query in queries]
    for query, words in zip(queries, tokens(tokenizer, queries), strict=True):
        assert not [word for word, scope in words if scope == "source"], query
