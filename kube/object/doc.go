// Package object defines the terms that the domains use for Kubernetes objects: a Ref names an object, and Observed contains the facts about an
// object that decisions need. It is pure: it reads decoded objects and never a cluster.
//
// This package never contains clients, or the content of Secrets.
package object
