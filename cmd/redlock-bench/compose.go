package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// kindCompose are the containers of docker-compose.cluster.yml, as Compose has
// started them. A drill does to them what the docker program can.
const kindCompose = "compose"

const (
	composeFile  = "docker-compose.cluster.yml"
	composeNodes = 5 // services node1 to node5 of that file
	nodePort     = "6379/tcp"
)

// composed is a node that is a container.
type composed struct {
	container, service string
	networks           []string
}

// composePatients finds the containers of a project, or of the only one there is
// of the file.
func composePatients(ctx context.Context, project string) (*cluster, []patient, error) {
	listing, err := docker(ctx, "ps", "-a", "--no-trunc", "--filter", "label=com.docker.compose.project", "--format",
		`{{.ID}},{{.Label "com.docker.compose.project"}},{{.Label "com.docker.compose.service"}},{{.Label "com.docker.compose.project.config_files"}}`)
	if err != nil {
		return nil, nil, err
	}
	services, err := projectNodes(listing, project)
	if err != nil {
		return nil, nil, err
	}
	c := &cluster{}
	var patients []patient
	for i := range composeNodes {
		name := fmt.Sprint("node", i+1)
		text, err := docker(ctx, "inspect", services[name])
		if err != nil {
			return nil, nil, err
		}
		nodeURL, networks, err := readContainer(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		c.urls = append(c.urls, nodeURL)
		patients = append(patients, &composed{container: services[name], service: name, networks: networks})
	}
	return c, patients, nil
}

// projectNodes finds in what docker ps lists the containers of a project, by
// service. Without a name it is the one that was made of the file.
func projectNodes(listing, project string) (map[string]string, error) {
	projects := make(map[string]map[string]string) // by project and service
	for line := range strings.Lines(listing) {
		f := strings.SplitN(strings.TrimSpace(line), ",", 4)
		if len(f) < 4 || (project == "" && filepath.Base(f[3]) != composeFile) || (project != "" && f[1] != project) {
			continue
		}
		if projects[f[1]] == nil {
			projects[f[1]] = make(map[string]string)
		}
		projects[f[1]][f[2]] = f[0]
	}
	names := slices.Sorted(maps.Keys(projects))
	switch {
	case len(names) == 0 && project == "":
		return nil, fmt.Errorf("there are no containers of %s: docker compose -f %s up -d", composeFile, composeFile)
	case len(names) == 0:
		return nil, fmt.Errorf("there are no containers of the project %q: docker compose -p %s -f %s up -d", project, project, composeFile)
	case len(names) > 1:
		return nil, fmt.Errorf("%s runs several times: want compose:PROJECT with one of %s", composeFile, listed(names))
	}
	for i := range composeNodes {
		if name := fmt.Sprint("node", i+1); projects[names[0]][name] == "" {
			return nil, fmt.Errorf("the project %q has no %s: want node1 to node%d, as in %s", names[0], name, composeNodes, composeFile)
		}
	}
	return projects[names[0]], nil
}

// readContainer finds in what docker inspect says where a node is reached from here
// and which networks it is in.
func readContainer(text string) (nodeURL string, networks []string, err error) {
	var containers []struct {
		State      struct{ Status string }
		HostConfig struct {
			PortBindings map[string][]struct {
				HostIP   string `json:"HostIp"`
				HostPort string
			}
		}
		NetworkSettings struct{ Networks map[string]any }
	}
	if err := json.Unmarshal([]byte(text), &containers); err != nil || len(containers) != 1 {
		return "", nil, errors.New("docker inspect says something else than expected")
	}
	c := containers[0]
	if c.State.Status != "running" {
		return "", nil, fmt.Errorf("it is %s: a drill begins with all nodes running", c.State.Status)
	}
	ports := c.HostConfig.PortBindings[nodePort]
	if len(ports) == 0 || ports[0].HostPort == "" || ports[0].HostPort == "0" {
		return "", nil, fmt.Errorf("port %s is not published on a port of its own, so it would not be found again", nodePort)
	}
	host := ports[0].HostIP
	if host == "" || host == "0.0.0.0" {
		host = "127.0.0.1"
	}
	return "redis://" + host + ":" + ports[0].HostPort, slices.Sorted(maps.Keys(c.NetworkSettings.Networks)), nil
}

func (c *composed) harm(ctx context.Context, a act) error {
	switch a.kind {
	case faultKill:
		return c.kill(ctx)
	case faultRestart:
		return errors.Join(c.kill(ctx), c.do(ctx, "start", c.container))
	case faultStop:
		return c.do(ctx, "pause", c.container)
	case faultUnplug:
		return c.plug(ctx, "disconnect")
	}
	return unable(a.kind)
}

func (c *composed) heal(ctx context.Context, fault faultKind) error {
	switch fault {
	case faultKill, faultRestart:
		return c.do(ctx, "start", c.container)
	case faultStop:
		return c.do(ctx, "unpause", c.container)
	case faultUnplug:
		return c.plug(ctx, "connect", "--alias", c.service)
	}
	return unable(fault)
}

// kill ends the container, unless it does not run.
func (c *composed) kill(ctx context.Context) error {
	running, err := docker(ctx, "inspect", "-f", "{{.State.Running}}", c.container)
	if err != nil || strings.TrimSpace(running) == "false" {
		return err
	}
	return c.do(ctx, "kill", c.container)
}

// plug changes all networks of the container.
func (c *composed) plug(ctx context.Context, how ...string) error {
	var errs []error
	for _, n := range c.networks {
		errs = append(errs, c.do(ctx, append(append([]string{"network"}, how...), n, c.container)...))
	}
	return errors.Join(errs...)
}

func (c *composed) do(ctx context.Context, args ...string) error {
	_, err := docker(ctx, args...)
	return err
}

// docker runs the docker program and returns what it says.
func docker(ctx context.Context, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", args...)
	apart(cmd)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		if said := strings.TrimSpace(complaint.String()); said != "" {
			err = errors.New(said)
		}
		return "", fmt.Errorf("docker %s: %w", args[0], err)
	}
	return out.String(), nil
}
