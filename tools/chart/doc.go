// Package chart checks the rendered chart: validity, roles, pod security and the schema of values.
// Its roles grant nothing by wildcard, its pods are restricted, and its schema refuses values that
// cannot work.
//
// What never may live here: a cluster. That the rendered roles suffice is shown by the end-to-end tests, which run
// scuted with them.
package chart
