// A click on a name, or Enter on it, hides the line, and shows it again.
document.querySelectorAll(".key").forEach(function (key) {
  function turn() {
    var line = key.closest("svg").querySelector('[data-line="' + key.dataset.key + '"]');
    key.classList.toggle("off", line.classList.toggle("off"));
  }
  key.addEventListener("click", turn);
  key.addEventListener("keydown", function (event) {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); turn(); }
  });
});
