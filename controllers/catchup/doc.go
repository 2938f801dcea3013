// Package catchup delays reconciliations until the view has caught up and the log may be used. That
// usually takes a moment. If the log is not the one that acted last, it takes until an operator
// decides.
package catchup
