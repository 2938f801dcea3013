// Command house measures the root module: lines, packages, unused exports, imports and walks. It
// counts lines of production code by folder, exported names that no other package uses, imports of
// a higher floor, and the files of each walk in docs/design/walks.md.
//
//	cd tools && go run ./house ..
package main
