package kube

import (
	"encoding/asn1"
	"encoding/pem"
	"fmt"
)

const (
	// maxKeyBits is the largest RSA key that Go's TLS accepts from a peer. The time of a computation grows with the third power of the bits, and
	// nothing can interrupt it.
	maxKeyBits = 8192
	// maxDER is the largest certificate or key, in bytes.
	maxDER = 64 << 10
	// maxNesting is the largest depth at which a number of a key is searched. Real keys need a few levels.
	maxNesting = 16
)

// CheckKeySizes returns an error if untrusted PEM contains a key whose computations take minutes or days, where a usual key takes milliseconds. It does
// no computation with the key. It ignores data that is not PEM, because the caller's parser rejects it.
func CheckKeySizes(data []byte) error {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if len(block.Bytes) > maxDER {
			return fmt.Errorf("a certificate or key has more than %d KiB", maxDER>>10)
		}
		if most := longestInteger(block.Bytes, maxNesting) * 8; most > maxKeyBits+8 { // a number may begin with a zero byte
			return fmt.Errorf("a key has %d bits: use a key of at most %d bits", most-8, maxKeyBits)
		}
	}
	return nil
}

// longestInteger returns the length in bytes of the longest number in DER. It also reads strings that contain DER, as certificates and keys do.
func longestInteger(der []byte, levels int) int {
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
			most = max(most, longestInteger(value.Bytes, levels-1))
		case value.Class != asn1.ClassUniversal:
		case value.Tag == asn1.TagInteger:
			most = max(most, len(value.Bytes))
		case value.Tag == asn1.TagOctetString:
			most = max(most, longestInteger(value.Bytes, levels-1))
		case value.Tag == asn1.TagBitString && len(value.Bytes) > 0:
			most = max(most, longestInteger(value.Bytes[1:], levels-1)) // the first byte is the number of unused bits
		}
	}
	return most
}
