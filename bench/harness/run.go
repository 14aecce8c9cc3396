package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// Config says how a run is done.
type Config struct {
	Env      Env                 // but Dir, Inputs and Profile
	Rounds   int                 // 0 = the scale's
	Dir      string              // for inputs and stores
	Profiles string              // directory for profiles; empty = none are taken
	Progress Progress            // told of each step; nil = nobody
	Programs map[string]string   // of nested modules, built, by directory
	Missing  []Missing           // peers that are known not to run; they are left out of the workloads
	Keep     func(*Report) error // called after each workload with all results so far; nil = nobody
}

// Progress hears what is done: step of all.
type Progress func(step, all int, what string)

// Run measures workloads one after the other. A peer that fails is left out from there on. The
// report tells of all that was measured; the error of peers that failed and of answers that differ.
// A run that is cancelled, or fills the disk, ends with the workloads before the one under way, and
// without the directories of peers.
func Run(ctx context.Context, workloads []Workload, c Config) (*Report, error) {
	if c.Rounds == 0 {
		c.Rounds = c.Env.Scale.Rounds
	}
	c.Env.Inputs = filepath.Join(c.Dir, "inputs")
	r := &Report{Version: reportVersion, Scale: c.Env.Scale.Name, Rounds: c.Rounds, Started: time.Now().UTC().Truncate(time.Second), Missing: c.Missing,
		Machine: fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())}
	if err := os.MkdirAll(c.Env.Inputs, 0o755); err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go watchSpace(ctx, c.Dir, cancel)
	state := &runState{config: c, cancel: cancel, prepared: map[string]bool{}, failed: map[string]error{}, groups: map[string]int{}, told: map[string]bool{}}
	for i := range workloads {
		state.all += (c.Rounds + 1) * len(workloads[i].Peers)
		state.groups[workloads[i].Group]++
	}
	var errs []error
	for i := range workloads {
		w := &workloads[i]
		m := measuring{ctx: ctx, w: w, runState: state, result: WorkloadResult{Workload: w.Name, About: w.About, Unit: w.Unit, More: w.More}}
		begin := time.Now()
		var err error
		if !m.derive(r) {
			err = m.run()
		}
		m.result.Seconds = time.Since(begin).Seconds()
		r.Seconds += m.result.Seconds
		if ctx.Err() != nil {
			state.removeAll(workloads)
			return r, fmt.Errorf("%s: %w; the results of the workloads before it are kept", w.Name, context.Cause(ctx))
		}
		errs = append(errs, err, m.result.compare(w.Changing))
		m.result.judge(w, r)
		r.Workloads = append(r.Workloads, m.result)
		if c.Keep != nil {
			if err := c.Keep(r); err != nil {
				return r, err
			}
		}
		if state.groups[w.Group]--; w.Group != "" && state.groups[w.Group] == 0 {
			os.RemoveAll(filepath.Join(c.Dir, w.Group))
		}
	}
	return r, errors.Join(errs...)
}

// runState is what workloads share.
type runState struct {
	config    Config
	cancel    context.CancelCauseFunc
	prepared  map[string]bool  // states of groups, by directory
	failed    map[string]error // those that failed
	groups    map[string]int   // how many workloads are still to come
	told      map[string]bool  // failures that the run's error has
	step, all int
}

// removeAll removes what is left of peers.
func (s *runState) removeAll(workloads []Workload) {
	for i := range workloads {
		for _, name := range []string{workloads[i].Name, workloads[i].Group} {
			if name != "" {
				os.RemoveAll(filepath.Join(s.config.Dir, name))
			}
		}
	}
}

// measuring is one workload under way.
type measuring struct {
	*runState
	ctx    context.Context
	w      *Workload
	specs  []spec   // by peer
	states []string // by peer: directory of the group's state; empty = there is none
	result WorkloadResult
}

func (m *measuring) run() error {
	if m.w.Inputs != nil {
		m.say(0, "inputs")
		if err := m.w.Inputs(&m.config.Env); err != nil {
			if full(err) {
				m.cancel(fmt.Errorf("%w: %w", errFull, err))
			}
			return fmt.Errorf("%s: inputs: %w", m.w.Name, err)
		}
	}
	for i := range m.w.Peers {
		m.begin(i)
		if !m.w.Fresh || m.w.Group != "" {
			begin := time.Now()
			m.note(i, m.prepare(i))
			m.result.Peers[i].Prepare = time.Since(begin).Seconds()
		}
		m.say(1, "")
	}
	for round := range m.config.Rounds {
		for i := range m.w.Peers {
			if m.result.Peers[i].Failed == "" {
				begin := time.Now()
				m.note(i, m.round(i, round))
				m.result.Peers[i].Seconds += time.Since(begin).Seconds()
			}
			m.say(1, "")
		}
	}
	var errs []error
	for i := range m.w.Peers {
		p := &m.result.Peers[i]
		if p.Failed == "" {
			m.note(i, m.memory(i))
		}
		if m.states[i] == "" || m.w.Copies {
			os.RemoveAll(m.specs[i].Env.Dir)
			os.Remove(filepath.Dir(m.specs[i].Env.Dir)) // when it is the last
		}
		if p.Failed != "" && !m.told[p.Failed] {
			m.told[p.Failed] = true // a state that cannot be prepared fails in each workload of its group
			errs = append(errs, errors.New(p.Failed))
		}
	}
	return errors.Join(errs...)
}

// derive makes the result of a workload's that does the same work; false if there is none.
func (m *measuring) derive(r *Report) bool {
	of := r.workload(m.w.Of)
	for i := range m.w.Peers {
		if of == nil || of.peer(m.w.Peers[i].Name) == nil {
			return false
		}
	}
	for i := range m.w.Peers {
		did := of.peer(m.w.Peers[i].Name)
		p := PeerResult{Peer: did.Peer, Ours: did.Ours, Failed: did.Failed, PeakBytes: did.PeakBytes}
		for _, round := range did.Rounds {
			got := m.w.Derive(round)
			if !(got.Value > 0) {
				p.Failed = m.nothing(p.Peer, got)
				break
			}
			p.Rounds = append(p.Rounds, got)
		}
		m.result.Peers = append(m.result.Peers, p)
	}
	m.say((m.config.Rounds+1)*len(m.w.Peers), "")
	return true
}

// begin finds out where a peer works.
func (m *measuring) begin(peer int) {
	p := &m.w.Peers[peer]
	env := m.config.Env
	env.Dir = filepath.Join(m.config.Dir, m.w.Name, p.Name)
	state := ""
	if m.w.Group != "" {
		name := p.Store
		if name == "" {
			name = p.Name
		}
		if state = filepath.Join(m.config.Dir, m.w.Group, name); !m.w.Copies {
			env.Dir = state
		}
	}
	m.states = append(m.states, state)
	m.specs = append(m.specs, spec{Workload: m.w.Name, Peer: p.Name, Env: env, Program: m.config.Programs[p.Module]})
	m.result.Peers = append(m.result.Peers, PeerResult{Peer: p.Name, Ours: p.Ours})
}

// note takes down that a peer failed.
func (m *measuring) note(peer int, err error) {
	if err != nil && full(err) {
		m.cancel(fmt.Errorf("%w: %w", errFull, err))
	}
	if err != nil && m.ctx.Err() == nil {
		m.result.Peers[peer].Failed = err.Error()
		if m.w.Changing && m.states[peer] != "" {
			m.failed[m.states[peer]] = err // what it left is not what the others go on from
		}
	}
}

// prepare empties a peer's directory and has it make what the measurement starts from: for all
// workloads of a group once.
func (m *measuring) prepare(peer int) error {
	s, state := m.specs[peer], m.states[peer]
	if state != "" {
		if m.prepared[state] || m.failed[state] != nil {
			return m.failed[state]
		}
		s.Env.Dir = state
	}
	err := m.make(peer, s)
	if state != "" {
		m.prepared[state], m.failed[state] = err == nil, err
	}
	return err
}

func (m *measuring) make(peer int, s spec) error {
	if err := os.RemoveAll(s.Env.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Env.Dir, 0o755); err != nil {
		return err
	}
	if p := &m.w.Peers[peer]; p.Prepare == nil && p.Module == "" {
		return nil // what a nested module's peer does, its program knows
	}
	m.say(0, s.Peer+": prepare")
	_, err := start(m.ctx, s, stepPrepare)
	return err
}

// again gives a peer the state that a round begins with.
func (m *measuring) again(peer int) error {
	if m.ctx.Err() != nil {
		return m.ctx.Err()
	}
	switch s := m.specs[peer]; {
	case m.w.Copies:
		return copyDir(s.Env.Dir, m.states[peer])
	case m.w.Fresh:
		return m.make(peer, s)
	}
	return nil
}

// copyDir makes a directory a copy of another, on the disk when it returns.
func copyDir(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// round measures one peer once.
func (m *measuring) round(peer, round int) error {
	if err := m.again(peer); err != nil {
		return err
	}
	p, s := &m.w.Peers[peer], m.specs[peer]
	m.say(0, fmt.Sprintf("%s: round %d of %d", p.Name, round+1, m.config.Rounds))
	s.Env.Round = round
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
	if err == nil && !(got.Value > 0) {
		err = errors.New(m.nothing(p.Name, got))
	}
	if err == nil {
		got.DiskBytes = diskBytes(s.Env.Dir)
		r := &m.result.Peers[peer]
		r.Rounds = append(r.Rounds, got)
	}
	if m.w.Fresh && m.states[peer] == "" || m.w.Copies {
		os.RemoveAll(s.Env.Dir) // the next round makes it anew
	}
	return err
}

// nothing tells that a round measured nothing.
func (m *measuring) nothing(peer string, got Measurement) string {
	return fmt.Sprintf("%s/%s: measured %v %s", m.w.Name, peer, got.Value, m.w.Unit)
}

// diskBytes is what the files of a directory take on the disk.
func diskBytes(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += allocated(info)
			}
		}
		return nil
	})
	return n
}

// DiskBytes is what the peer's directory takes on the disk, by allocated blocks.
func (e *Env) DiskBytes() int64 { return diskBytes(e.Dir) }

// memory does the work once more, where that is needed to see the peak.
func (m *measuring) memory(peer int) error {
	p, r := &m.w.Peers[peer], &m.result.Peers[peer]
	for _, round := range r.Rounds {
		r.PeakBytes = max(r.PeakBytes, round.PeakBytes)
	}
	if p.Memory == nil {
		return nil
	}
	if err := m.again(peer); err != nil {
		return err
	}
	m.say(0, p.Name+": memory")
	got, err := start(m.ctx, m.specs[peer], stepMemory)
	r.PeakBytes = got.PeakBytes
	return err
}

// say tells of a step that begins or, without a text, that n more are done.
func (m *measuring) say(n int, what string) {
	m.step += n
	if m.config.Progress != nil && what != "" {
		m.config.Progress(m.step, m.all, m.w.Name+": "+what)
	}
}

// Leave takes peers out of workloads, and workloads without peers out of the list.
func Leave(workloads []Workload, missing []Missing) []Workload {
	var out []Workload
	for _, w := range workloads {
		w.Peers = slices.DeleteFunc(slices.Clone(w.Peers), func(p Peer) bool {
			return slices.ContainsFunc(missing, func(m Missing) bool { return m.Peer == p.Name || m.Module != "" && m.Module == p.Module })
		})
		if len(w.Peers) > 0 {
			out = append(out, w)
		}
	}
	return out
}
