"""Language models behind one port. Vendors' SDKs are imported when first used."""
