// Package catchup has reconciles wait until the view holds all that the log held at the start, and the log may be acted on.
// That takes a moment as a rule, and for as long as an operator needs where the log is not the one that acted last.
package catchup
