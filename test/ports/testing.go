package ports

import "testing"

// AddressForTest returns an unused address of this machine that is reserved until the test ends.
func AddressForTest(t testing.TB) string {
	t.Helper()
	block, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := block.Release(); err != nil {
			t.Error(err)
		}
	})
	port, err := block.One()
	if err != nil {
		t.Fatal(err)
	}
	return address(port)
}
