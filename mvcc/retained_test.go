package mvcc

import "testing"

func TestRetainedBefore(t *testing.T) {
	r := Retained{Floor: 9, Points: []Timestamp{2, 5}}
	for ts, want := range map[Timestamp]Timestamp{1: 0, 2: 0, 3: 2, 5: 2, 6: 5, 9: 5, 10: 9, 12: 11} {
		if at, ok := r.Before(ts); at != want || ok != (want > 0) {
			t.Errorf("before %d: %d, %t, want %d", ts, at, ok, want)
		}
	}
	if _, ok := (&Retained{Floor: 9}).Before(9); ok {
		t.Error("a state below the floor can be read without points")
	}
	if first := r.First(); first != 2 {
		t.Errorf("first %d, want 2", first)
	}
	if first := (&Retained{Floor: 9}).First(); first != 9 {
		t.Errorf("first without points %d, want 9", first)
	}
}
