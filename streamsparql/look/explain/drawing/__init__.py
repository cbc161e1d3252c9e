"""Drawing: layout, colours, style sheets and frames that the picture formats share."""
