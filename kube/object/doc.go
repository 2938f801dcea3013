// Package object holds the words the domains use for Kubernetes objects: a Ref that names one, and the Observed facts
// about one that decisions need. It is pure: it reads decoded objects and never a cluster.
//
// What never may live here: clients, and the content of Secrets.
package object
