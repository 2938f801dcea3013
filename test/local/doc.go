// Package local kills scutectl at every commit of local runs and compares the results. It compares
// them with a run that was not killed.
package local
