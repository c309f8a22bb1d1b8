"""The studio: a page on which people answer "same or different?" and see the map get better."""
