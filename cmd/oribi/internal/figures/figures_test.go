package figures

import (
	"math"
	"testing"
)

func TestSizesAndThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", -2048: "-2.0 KiB", 1<<20 - 1: "1.0 MiB", 3 << 19: "1.5 MiB",
		1 << 30: "1.0 GiB", 1 << 40: "1.0 TiB", 1 << 50: "1.0 PiB", math.MaxInt64: "8.0 EiB", math.MinInt64: "-8.0 EiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", 123456789: "123,456,789", -123: "-123"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
