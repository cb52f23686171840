"""A made-up centre that writes raw logs; imports neither collectors nor ioportal."""
