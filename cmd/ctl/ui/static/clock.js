// Updates the ages and durations ("3m12s ago", "3m12s") on an open page of the present between two messages of the server.
// It formats them as cli.Span does, which is HumanDuration of k8s.io/apimachinery/pkg/util/duration.
(() => {
	"use strict";
	const ahead = Date.parse(document.body.dataset.now) - Date.now(); // how far the browser's clock is behind
	const both = (n, unit, rest, smaller) => n + unit + (rest ? rest + smaller : "");

	const span = seconds => {
		const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24), years = Math.floor(days / 365);
		if (seconds < 120) return seconds + "s";
		if (minutes < 10) return both(minutes, "m", seconds % 60, "s");
		if (minutes < 180) return minutes + "m";
		if (hours < 8) return both(hours, "h", minutes % 60, "m");
		if (hours < 48) return hours + "h";
		if (days < 8) return both(days, "d", hours % 24, "h");
		if (days < 730) return days + "d";
		if (years < 8) return both(years, "y", days % 365, "d");
		return years + "y";
	};

	setInterval(() => {
		for (const e of document.querySelectorAll("#live [data-since]")) {
			const seconds = Math.floor((Date.now() + ahead - Date.parse(e.dataset.since)) / 1000);
			const text = !e.classList.contains("ago") ? span(Math.max(seconds, 0)) : seconds < 1 ? "just now" : span(seconds) + " ago";
			if (e.textContent !== text) e.textContent = text;
		}
	}, 1000);
})();
