"""Features: columns of a copy prepared for tabulation, classification and regression, with their perturbation."""
