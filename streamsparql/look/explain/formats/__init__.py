"""The formats of `explain`: plain text, JSON, DOT, Mermaid, SVG and HTML."""
