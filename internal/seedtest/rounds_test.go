package seedtest

import (
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestRoundsAndStrides(t *testing.T) {
	given := testing.Short()
	for _, c := range []struct {
		full           string
		rounds, stride int
	}{{"1", 90, 1}, {"", 30, 3}} {
		t.Setenv(fullVariable, c.full)
		if given && c.full == "" {
			c.rounds, c.stride = 12, 7
		}
		must.Equal(t, Needed(90, 12), c.rounds, fullVariable, c.full, "rounds")
		must.Equal(t, stride(7, false), c.stride, fullVariable, c.full, "stride")
	}
	t.Setenv(fullVariable, "")
	must.Equal(t, Needed(uint64(8), 8), 8, "fewer than with -short", "rounds")
	must.Equal(t, Stride(1), 1, "fewer than with -short", "stride")
	if !given {
		return
	}
	must.Equal(t, rounds(90, 12, true), 3, "with the race detector")
	must.Equal(t, rounds(90, 2, true), 1, "with the race detector")
	must.Equal(t, stride(7, true), 27, "with the race detector")
	must.Equal(t, stride(1, true), 1, "with the race detector")
}
