package inspect

import (
	"github.com/oribi-db/oribi/internal/must"
	"testing"
	"time"
)

func TestDurationsHaveThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 ns", 999: "999 ns", 1000: "1.00 µs", 403_880: "404 µs",
		28_552: "28.6 µs", 3_720_000: "3.72 ms",
		14_949_000: "14.9 ms", 135_740_000: "136 ms", 59_990 * time.Millisecond: "60.0 s",
		61_499 * time.Millisecond: "1m1s", 3 * time.Hour: "3h0m0s"} {
		must.Equal(t, duration(d), want, d)
	}
}

func TestAgesAreInOneUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Minute: "1 minute",
		59*time.Minute + 59*time.Second: "59 minutes", 90 * time.Minute: "1 hour",
		47 * time.Hour: "47 hours", 50 * time.Hour: "2 days"} {
		must.Equal(t, ageText(d), want, d)
	}
}
