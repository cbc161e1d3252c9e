"""Boxes: the one description of plans, syntax trees and Spark runs that every format draws."""
