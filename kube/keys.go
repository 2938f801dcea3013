package kube

import (
	"encoding/asn1"
	"encoding/pem"
	"fmt"
)

const (
	// mostBits of an RSA key are those that Go's TLS takes of the other side. To compute with a key takes a time that grows with the
	// third power of its bits, and nothing interrupts it.
	mostBits = 8192
	// mostDER bounds one certificate or key.
	mostDER = 64 << 10
	// mostNested are the levels at which a number of a key may be: a few.
	mostNested = 16
)

// Affordable refuses PEM of somebody else with a key that takes minutes or days to compute with, where a usual one takes milliseconds.
// It computes nothing. What is no PEM is left to who reads it.
func Affordable(data []byte) error {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if len(block.Bytes) > mostDER {
			return fmt.Errorf("a certificate or key has more than %d KiB", mostDER>>10)
		}
		if most := longest(block.Bytes, mostNested) * 8; most > mostBits+8 { // a number may begin with a byte of zeros
			return fmt.Errorf("a key has %d bits: use one of %d at most", most-8, mostBits)
		}
	}
	return nil
}

// longest is how many bytes the longest number in DER has, also in the strings that hold DER again, as certificates and keys do.
func longest(der []byte, levels int) int {
	most := 0
	for len(der) > 0 && levels > 0 {
		var value asn1.RawValue
		rest, err := asn1.Unmarshal(der, &value)
		if err != nil {
			break
		}
		der = rest
		switch {
		case value.IsCompound:
			most = max(most, longest(value.Bytes, levels-1))
		case value.Class != asn1.ClassUniversal:
		case value.Tag == asn1.TagInteger:
			most = max(most, len(value.Bytes))
		case value.Tag == asn1.TagOctetString:
			most = max(most, longest(value.Bytes, levels-1))
		case value.Tag == asn1.TagBitString && len(value.Bytes) > 0:
			most = max(most, longest(value.Bytes[1:], levels-1)) // the first byte says how many bits are unused
		}
	}
	return most
}
