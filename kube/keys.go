package kube

import (
	"encoding/asn1"
	"encoding/pem"
	"fmt"
)

const (
	// mostBits is the largest RSA key that Go's TLS accepts from a peer. The time of a computation grows with the third power of the bits, and
	// nothing can interrupt it.
	mostBits = 8192
	// mostDER is the largest certificate or key, in bytes.
	mostDER = 64 << 10
	// mostNested is the largest depth at which a number of a key is searched. Real keys need a few levels.
	mostNested = 16
)

// Affordable returns an error if untrusted PEM contains a key whose computations take minutes or days, where a usual key takes milliseconds. It does
// no computation with the key. It ignores data that is not PEM, because the caller's parser rejects it.
func Affordable(data []byte) error {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if len(block.Bytes) > mostDER {
			return fmt.Errorf("a certificate or key has more than %d KiB", mostDER>>10)
		}
		if most := longest(block.Bytes, mostNested) * 8; most > mostBits+8 { // a number may begin with a zero byte
			return fmt.Errorf("a key has %d bits: use one of %d at most", most-8, mostBits)
		}
	}
	return nil
}

// longest returns the length in bytes of the longest number in DER. It also reads strings that contain DER, as certificates and keys do.
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
			most = max(most, longest(value.Bytes[1:], levels-1)) // the first byte is the number of unused bits
		}
	}
	return most
}
