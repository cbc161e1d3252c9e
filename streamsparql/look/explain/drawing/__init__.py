"""Layout, colours, labels and style sheets that the picture formats share."""
