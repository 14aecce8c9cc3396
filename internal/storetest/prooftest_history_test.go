package storetest

import (
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/script"
)

// A script is a complete description of a history: parsed from its text, it runs with the same
// counts. Crashes are disabled, since the timing of Pebble's goroutines determines which unsynced
// pages and batches a power cut loses.
func TestScriptRoundTripsThroughText(t *testing.T) {
	for seed := range uint64(6) {
		settings := history.RandomSettings(seed)
		settings.NoCrashes = true
		r := history.Explore(settings, func(c history.Counts) bool { return c.Steps < 60 })
		must.Do(t, r.Err, "seed", seed)
		text := r.Script.String()
		s, err := script.Parse(text)
		must.Do(t, err, "seed", seed)
		must.Equal(t, s.String(), text, "seed", seed, "is not")
		if again := history.Run(s); again.Err != nil || again.Counts != r.Counts {
			t.Errorf("seed %d: %+v, %v, want %+v", seed, again.Counts, again.Err, r.Counts)
		}
	}
	must.Refuse(t, must.Err(script.Parse("create t0 keys=x")), "nonsense is a script")
}

// Shrink reduces a failing history to the steps that it needs: here to an unknown step.
func TestShrinkKeepsOnlyFailingSteps(t *testing.T) {
	r := history.Explore(history.RandomSettings(3), func(c history.Counts) bool { return c.Steps < 40 })
	s := &script.Script{Settings: r.Script.Settings,
		Steps: append(r.Script.Steps[:30:30], script.Step{Kind: "nonsense"})}
	s.Steps = append(s.Steps, r.Script.Steps[30:]...)
	if short := history.Shrink(s, 10*time.Second); len(short.Steps) != 1 || short.Steps[0].Kind != "nonsense" {
		t.Errorf("what is left:\n%s", short)
	}
}
