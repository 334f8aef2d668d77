"""What finished runs say of their variants: tables, statistics, figures, reports."""
