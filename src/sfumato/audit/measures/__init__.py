"""The field's measures of disclosure risk and utility: singling out, linkability, inference, information loss."""
