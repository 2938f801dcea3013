// Package comparison judges what two systems that repair machines make of the same fault, and writes the table of it into the
// documentation. It causes no fault and asks no cluster: package test/remediation does.
package comparison
