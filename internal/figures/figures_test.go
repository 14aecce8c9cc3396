package figures

import (
	"math"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestSizesAndThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", -2048: "-2.0 KiB",
		1<<20 - 1: "1.0 MiB", 3 << 19: "1.5 MiB",
		1 << 30: "1.0 GiB", 1 << 40: "1.0 TiB", 1 << 50: "1.0 PiB", math.MaxInt64: "8.0 EiB",
		math.MinInt64: "-8.0 EiB"} {
		must.Equal(t, Size(n), want, n, "bytes")
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000",
		123456789: "123,456,789", -123: "-123"} {
		must.Equal(t, Thousands(n), want, n)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"0B": 0, "17B": 17, "3KB": 3 << 10, "128MB": 128 << 20,
		"2GB": 2 << 30, "8589934591GB": 8589934591 << 30} {
		must.Equal(t, must.Get(ParseSize(text))(t), want, text)
	}
	for _, text := range []string{"", "B", "MB", "17", "-1B", "+1B", "1.5GB", "1 MB", "1mb", "1BM", "1TB",
		"8589934592GB", "9223372036854775808B", "1KBB", "0x1B"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}
