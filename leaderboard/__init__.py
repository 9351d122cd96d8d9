"""The leaderboard's data: submissions, verifications, model cards, tables, site."""
