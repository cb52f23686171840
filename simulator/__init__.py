"""A simulated centre that writes raw logs; imports neither collectors nor ioportal."""
