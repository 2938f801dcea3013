// Command refusaldoc writes docs/refused.md: what the API server refuses of each kind, made of the CRDs in a folder.
package main
