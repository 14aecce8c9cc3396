package inspect

import (
	"testing"
	"time"
)

func TestDurationsHaveThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 ns", 999: "999 ns", 1000: "1.00 µs", 403_880: "404 µs",
		28_552: "28.6 µs", 3_720_000: "3.72 ms",
		14_949_000: "14.9 ms", 135_740_000: "136 ms", 59_990 * time.Millisecond: "60.0 s",
		61_499 * time.Millisecond: "1m1s", 3 * time.Hour: "3h0m0s"} {
		if got := duration(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
}

func TestAgesAreInOneUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Minute: "1 minute",
		59*time.Minute + 59*time.Second: "59 minutes", 90 * time.Minute: "1 hour",
		47 * time.Hour: "47 hours", 50 * time.Hour: "2 days"} {
		if got := ageText(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
