"""What airspeed velocity measures for each commit: ``make history``. Figures are ratios and scores, not seconds."""
