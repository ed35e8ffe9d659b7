package main

import (
	"slices"
	"strings"
	"testing"
)

// composeListing is what docker ps lists of a project of the file, of another that
// has only a part of it, and of one that has nothing to do with it.
const composeListing = `a1,mine,node1,/home/me/docker-compose.cluster.yml
a2,mine,node2,/home/me/docker-compose.cluster.yml
a3,mine,node3,/home/me/docker-compose.cluster.yml
a4,mine,node4,/home/me/docker-compose.cluster.yml
a5,mine,node5,/home/me/docker-compose.cluster.yml
b1,half,node1,/home/me/half.yml,/home/me/more.yml
c1,shop,web,/srv/compose.yml
`

func TestContainersOfAProjectAreFound(t *testing.T) {
	for _, project := range []string{"", "mine"} {
		found, err := projectNodes(composeListing, project)
		if err != nil || len(found) != composeNodes || found["node1"] != "a1" || found["node5"] != "a5" {
			t.Errorf("%q: %v, %v", project, found, err)
		}
	}
	second := strings.NewReplacer("a", "d", "mine", "other").Replace("a1,mine,node1,") + "docker-compose.cluster.yml\n"
	for _, test := range []struct{ listing, project, want string }{
		{"", "", "there are no containers of docker-compose.cluster.yml: docker compose -f docker-compose.cluster.yml up -d"},
		{composeListing, "yours", `there are no containers of the project "yours": docker compose -p yours -f docker-compose.cluster.yml up -d`},
		{composeListing, "half", `the project "half" has no node2: want node1 to node5`},
		{composeListing + second, "", "docker-compose.cluster.yml runs several times: want compose:PROJECT with one of mine and other"},
	} {
		if _, err := projectNodes(test.listing, test.project); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: error %v, want …%s…", test.project, err, test.want)
		}
	}
}

func TestContainersAreRead(t *testing.T) {
	const good = `[{"State": {"Status": "running"}, "HostConfig": {"PortBindings": {"6379/tcp": [{"HostIp": "127.0.0.1", "HostPort": "7101"}]}},
		"NetworkSettings": {"Networks": {"mine_default": {"IPAddress": "172.18.0.2"}, "back": {}}}}]`
	nodeURL, networks, err := readContainer(good)
	if err != nil || nodeURL != "redis://127.0.0.1:7101" || !slices.Equal(networks, []string{"back", "mine_default"}) {
		t.Errorf("%s in %q, %v", nodeURL, networks, err)
	}
	for _, host := range []string{`""`, `"0.0.0.0"`} {
		if nodeURL, _, err := readContainer(strings.Replace(good, `"127.0.0.1"`, host, 1)); err != nil || nodeURL != "redis://127.0.0.1:7101" {
			t.Errorf("published on %s: %s, %v", host, nodeURL, err)
		}
	}
	for text, want := range map[string]string{
		"": "docker inspect says something else than expected",
		strings.Replace(good, "running", "paused", 1):  "it is paused: a drill begins with all nodes running",
		strings.Replace(good, "7101", "", 1):           "port 6379/tcp is not published on a port of its own",
		strings.Replace(good, "6379/tcp", "80/tcp", 1): "port 6379/tcp is not published on a port of its own",
	} {
		if _, _, err := readContainer(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want …%s…", err, want)
		}
	}
}
