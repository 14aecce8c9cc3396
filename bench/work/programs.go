package work

import (
	"context"
	"os/exec"
	"strconv"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/programs"
)

// examplePrograms measures the programs in examples beside the same with other stores: processes, from
// start to end, each on a new store.
func examplePrograms() (out []harness.Workload) {
	for _, c := range []struct {
		name, about string
		n           func(s *harness.Scale) int
		against     string
	}{
		{"shop", "16 customers want 8,000 items, of which 5,000 are there, and look at their newest orders after each, synced",
			func(s *harness.Scale) int { return s.Gets / 4000 }, harness.BestPeer},
		{"queue", "2,000 jobs are pushed one after another, then taken and finished by 4 workers, synced",
			func(s *harness.Scale) int { return s.Gets / 100 }, harness.BestPeer},
		{"sessions", "16 servers begin 10,000 sessions, renew a third, end a third, and look for each 20 times, synced",
			func(s *harness.Scale) int { return s.Gets / 20 }, harness.BestPeer},
		{"limiter", "16 servers count 192,000 requests of 4,000 clients in 12,000 counters, not synced",
			func(s *harness.Scale) int { return s.Inserts / 500 }, "sqlite"},
	} {
		w := harness.Workload{
			Name: "program-" + c.name, About: "examples/" + c.name + ": " + c.about, Unit: "s", Fresh: true, MemoryLimit: peakLimit,
			Inputs: func(env *harness.Env) error {
				for _, store := range programs.Stores {
					if err := programs.Build(context.Background(), env.Root, env.Inputs, c.name, store); err != nil {
						return err
					}
				}
				return nil
			},
			Floors: []harness.Floor{{Peer: programs.Ours, Against: c.against, Ratio: 1}},
		}
		for _, store := range programs.Stores {
			w.Peers = append(w.Peers, harness.Peer{Name: store, Ours: store == programs.Ours, Check: checkOutput,
				Command: func(env *harness.Env) (*exec.Cmd, error) {
					n := strconv.Itoa(max(1, c.n(&env.Scale)))
					return intoFile(env, exec.Command(programs.File(env.Inputs, c.name, store), "-n", n, env.Path(storeDir)))
				}})
		}
		out = append(out, w)
	}
	return out
}
