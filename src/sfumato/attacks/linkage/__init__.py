"""Record linkage under a secret linear map: which row is which record, and which map fits a sample (giannella2010)."""
