"""What translates: torch, or CTranslate2 where torch is not installed."""
