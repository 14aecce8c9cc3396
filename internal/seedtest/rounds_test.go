package seedtest

import (
	"testing"
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
		if r, s := Rounds(90, 12), Stride(7); r != c.rounds || s != c.stride {
			t.Errorf("%s=%s: %d rounds, stride %d; want %d and %d", fullVariable, c.full, r, s, c.rounds, c.stride)
		}
	}
	t.Setenv(fullVariable, "")
	if r, s := Rounds(uint64(8), 8), Stride(1); r != 8 || s != 1 {
		t.Errorf("fewer than with -short: %d rounds, stride %d", r, s)
	}
}
