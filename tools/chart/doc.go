// Package chart checks what charts/scute renders: that it is what Kubernetes will read, that its roles grant nothing
// by wildcard, that its pods are restricted, and that its schema refuses what cannot work.
//
// What never may live here: a cluster. That the rendered roles suffice is shown by the end-to-end tests, which run
// scuted with them.
package chart
