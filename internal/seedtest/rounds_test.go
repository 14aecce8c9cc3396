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
		if r, s := Needed(90, 12), Stride(7); r != c.rounds || s != c.stride {
			t.Errorf("%s=%s: %d rounds, stride %d; want %d and %d", fullVariable, c.full, r, s, c.rounds, c.stride)
		}
	}
	t.Setenv(fullVariable, "")
	if r, s := Needed(uint64(8), 8), Stride(1); r != 8 || s != 1 {
		t.Errorf("fewer than with -short: %d rounds, stride %d", r, s)
	}
	if !given {
		return
	}
	if r, one := rounds(90, 12, true), rounds(90, 2, true); r != 3 || one != 1 {
		t.Errorf("with the race detector: %d and %d rounds; want 3 and 1", r, one)
	}
}
