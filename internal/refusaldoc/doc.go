// Command refusaldoc writes docs/refused.md: what the API server refuses of each kind, made of the CRDs in a folder.
//
//	go run ./internal/refusaldoc config/crd > docs/refused.md
package main
