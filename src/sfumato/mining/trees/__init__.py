"""Decision trees from reconstructed data: joint densities, class probabilities, feature selection and local trees."""
