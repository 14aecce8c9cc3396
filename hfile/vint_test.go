package hfile

import (
	"bytes"
	"encoding/hex"
	"github.com/oribi-db/oribi/internal/must"
	"math"
	"testing"
)

func TestVintVectors(t *testing.T) {
	for _, c := range []struct {
		v   int64
		hex string
	}{
		{0, "00"}, {127, "7f"}, {128, "8f80"}, {255, "8fff"}, {65536, "8d010000"},
		{math.MaxInt32, "8c7fffffff"}, {math.MaxInt64, "887fffffffffffffff"},
		{-1, "ff"}, {-112, "90"}, {-113, "8770"}, {math.MinInt64, "807fffffffffffffff"},
	} {
		want, _ := hex.DecodeString(c.hex)
		must.Equal(t, appendVint(nil, c.v), want, c.v)
		if v, n := vint(want); v != c.v || n != len(want) {
			t.Errorf("vint(%x) = %d, %d bytes, want %d, %d", want, v, n, c.v, len(want))
		}
		for cut := range want {
			if _, n := vint(want[:cut]); n != 0 {
				t.Errorf("vint(%x) reads %d bytes of a number that was cut off", want[:cut], n)
			}
		}
	}
}

func TestKeyRoundTrips(t *testing.T) {
	for _, k := range []Key{
		{Row: []byte("key1"), Timestamp: math.MaxInt64, Type: Put},
		{},
		{Row: []byte("r"), Family: []byte("cf"), Qualifier: []byte("q"), Timestamp: 7, Type: DeleteColumn},
	} {
		b := appendKey(nil, k)
		must.Equal(t, len(b), k.encodedLen())
		got, ok := parseKey(b)
		if !ok || got.Compare(k) != 0 || !bytes.Equal(got.Family, k.Family) {
			t.Errorf("parseKey(%x) = %v, %t, want %v", b, got, ok, k)
		}
		for cut := range b {
			if len(b)-cut < keyFixedLen {
				if _, ok := parseKey(b[cut:]); ok {
					t.Errorf("parseKey accepts %d bytes", len(b)-cut)
				}
			}
		}
	}
}
