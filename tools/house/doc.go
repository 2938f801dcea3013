// Command house measures the root module: lines of production code by folder, packages, exported names that no other package uses, imports of a
// higher floor, and the files of each walk in docs/design/walks.md.
//
//	cd tools && go run ./house ..
package main
