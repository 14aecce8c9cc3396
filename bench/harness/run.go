package harness

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Config says how a run is done.
type Config struct {
	Env      Env       // but Dir, Inputs and Profile
	Rounds   int       // 0 = the scale's
	Dir      string    // for inputs and stores
	Profiles string    // directory for profiles; empty = none are taken
	Progress io.Writer // told of each step; nil = nobody
}

// Run measures workloads one after the other.
func Run(ctx context.Context, workloads []Workload, c Config) (*Report, error) {
	if c.Rounds == 0 {
		c.Rounds = c.Env.Scale.Rounds
	}
	c.Env.Inputs = filepath.Join(c.Dir, "inputs")
	if err := os.MkdirAll(c.Env.Inputs, 0o755); err != nil {
		return nil, err
	}
	r := &Report{Scale: c.Env.Scale.Name, Rounds: c.Rounds, Machine: fmt.Sprintf("%s/%s, %d processors, %s",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())}
	for i := range workloads {
		w := &workloads[i]
		m := measuring{ctx: ctx, w: w, config: c, result: WorkloadResult{Workload: w.Name, About: w.About, Unit: w.Unit}}
		err := m.run()
		if err != nil {
			return r, err
		}
		r.Workloads = append(r.Workloads, m.result)
	}
	return r, nil
}

// measuring is one workload under way.
type measuring struct {
	ctx    context.Context
	w      *Workload
	config Config
	specs  []spec // by peer
	result WorkloadResult
}

func (m *measuring) run() error {
	if m.w.Inputs != nil {
		m.say("inputs")
		if err := m.w.Inputs(&m.config.Env); err != nil {
			return fmt.Errorf("%s: inputs: %w", m.w.Name, err)
		}
	}
	for i := range m.w.Peers {
		p := &m.w.Peers[i]
		env := m.config.Env
		env.Dir = filepath.Join(m.config.Dir, m.w.Name, p.Name)
		m.specs = append(m.specs, spec{Workload: m.w.Name, Peer: p.Name, Env: env})
		m.result.Peers = append(m.result.Peers, PeerResult{Peer: p.Name, Ours: p.Ours})
		if !m.w.Fresh {
			if err := m.prepare(i); err != nil {
				return err
			}
		}
	}
	for round := range m.config.Rounds {
		for i := range m.w.Peers {
			if err := m.round(i, round); err != nil {
				return err
			}
		}
	}
	for i := range m.w.Peers {
		if err := m.memory(i); err != nil {
			return err
		}
		os.RemoveAll(m.specs[i].Env.Dir)
	}
	if err := m.result.compare(); err != nil {
		return err
	}
	m.result.judge(m.w)
	return nil
}

// prepare empties a peer's directory and has it make what the measurement starts from.
func (m *measuring) prepare(peer int) error {
	s := m.specs[peer]
	if err := os.RemoveAll(s.Env.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Env.Dir, 0o755); err != nil {
		return err
	}
	if m.w.Peers[peer].Prepare == nil {
		return nil
	}
	m.say(s.Peer + ": prepare")
	_, err := start(m.ctx, s, stepPrepare)
	return err
}

// round measures one peer once.
func (m *measuring) round(peer, round int) error {
	if m.w.Fresh {
		if err := m.prepare(peer); err != nil {
			return err
		}
	}
	p, s := &m.w.Peers[peer], m.specs[peer]
	m.say(fmt.Sprintf("%s: round %d of %d", p.Name, round+1, m.config.Rounds))
	if m.config.Profiles != "" && round == 0 {
		s.Env.Profile = filepath.Join(m.config.Profiles, m.w.Name+"-"+p.Name)
	}
	var got Measurement
	var err error
	if p.Command != nil {
		got, err = measureCommand(m.ctx, p, s)
	} else {
		got, err = start(m.ctx, s, stepMeasure)
	}
	if err == nil {
		r := &m.result.Peers[peer]
		r.Rounds = append(r.Rounds, got)
	}
	return err
}

// memory does the work once more, where that is needed to see the peak.
func (m *measuring) memory(peer int) error {
	p, r := &m.w.Peers[peer], &m.result.Peers[peer]
	for _, round := range r.Rounds {
		r.PeakBytes = max(r.PeakBytes, round.PeakBytes)
	}
	if p.Memory == nil {
		return nil
	}
	if m.w.Fresh {
		if err := m.prepare(peer); err != nil {
			return err
		}
	}
	m.say(p.Name + ": memory")
	got, err := start(m.ctx, m.specs[peer], stepMemory)
	r.PeakBytes = got.PeakBytes
	return err
}

func (m *measuring) say(what string) {
	if m.config.Progress != nil {
		fmt.Fprintf(m.config.Progress, "%s: %s\n", m.w.Name, what)
	}
}
