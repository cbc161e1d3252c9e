"""Boxes: the description of plans, syntax trees and Spark runs that every format renders."""
