// Package plural formats numbers of things for messages.
package plural
