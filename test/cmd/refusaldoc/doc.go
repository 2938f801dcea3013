// Command refusaldoc writes docs/refused.md from the CRDs.
package main
