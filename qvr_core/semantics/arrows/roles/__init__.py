"""What each role of a morphism declaration demands and makes."""
